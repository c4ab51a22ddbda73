"""Where people meet Dikast; nothing imports this room."""
