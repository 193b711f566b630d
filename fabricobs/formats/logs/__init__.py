"""Line by line: templates of log lines, and what launchers and log services put around them."""
