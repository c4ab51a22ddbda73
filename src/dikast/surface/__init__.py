"""The user interfaces: command line, Python functions, reports; no other room imports this one."""
