"""The domains: what each can show, which claims can be made about it, and whether they are true."""
