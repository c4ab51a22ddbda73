"""The lab on the command line: its verbs and its page."""
