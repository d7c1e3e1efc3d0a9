package api

import "time"

// SetSilence makes a client impatient, for tests.
func (c *Client) SetSilence(d time.Duration) { c.silence = d }
