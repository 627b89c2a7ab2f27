"""Random TE programs and schedules of them."""
