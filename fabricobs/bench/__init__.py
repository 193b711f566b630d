"""How fast reading is: generated inputs, the way people do it today, and fabricobs, in pairs."""
