"""The repair loop: order, verify, feed back, choose. Knows the other rooms only through `ports`."""
