"""Models that vLLM runs in this process: prompts and reading as for local models, execution and caching by vLLM.

`VllmEngine` lives in `dikast.engines.vllm.engine`; `work` turns a request into what vLLM is asked, and its outputs into
a completion.
"""
