"""Schedules: runs that the host's own cron, or systemd timer, launches again and again while every laptop is off."""
