package api

import "time"

// SetSilence shortens the timeout of a stream, for tests.
func (c *Client) SetSilence(d time.Duration) { c.silence = d }
