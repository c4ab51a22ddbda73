"""Blind labelling by people: assignment of questions, labelling pages, a durable database, files for the audit."""
