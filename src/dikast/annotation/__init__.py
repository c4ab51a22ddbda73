"""People label items blind: who gets what, pages to label on, a database that loses nothing, files for the audit."""
