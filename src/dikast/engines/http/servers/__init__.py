"""Several servers of one model behind one engine: their list, load balancing, failover."""
