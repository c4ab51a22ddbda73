"""Models behind an OpenAI-compatible server: `http://HOST/v1#MODEL`, `https://...`, `openai:NAME`."""
