"""The lab: claims about judges tested again, each by a written rule, with intervals."""
