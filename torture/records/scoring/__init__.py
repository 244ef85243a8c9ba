"""From a trial's folder to its record, now or years later. Pure."""
