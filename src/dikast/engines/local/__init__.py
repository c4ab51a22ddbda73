"""Models that run on this machine, through transformers: prompts, generation, and verdicts read from distributions.

`LocalEngine` lives in `dikast.engines.local.engine`, the one module here that loads neither torch nor transformers
until an engine is made. The others, from the outside in: `source` (which files), `loading` (files to a model),
`template` (messages to text), `tokens` (text to token ids; control tokens in untrusted text have no effect), `vision`
(images), `clips` (video), `processor` (all that needs no weights), `prompt` (messages ready for the model), `batch`
(rows to tensors), `generating`, `constraint`, `reading`.
"""
