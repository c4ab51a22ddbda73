"""What a build starts from: images, questions, seed rubrics, evaluation prompts, known pairs."""
