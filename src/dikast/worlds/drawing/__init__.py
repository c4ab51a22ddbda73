"""Drawing with integers only: the same scene gives the same pixels on every machine."""
