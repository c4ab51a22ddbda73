"""What is drawn before anything is shown: sentences, scores, errors, splits, random numbers."""
