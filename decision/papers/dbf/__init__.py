"""DBF (arXiv 2401.09910): backfilling learned by windows of the queue, against heuristics and learned schedulers."""
