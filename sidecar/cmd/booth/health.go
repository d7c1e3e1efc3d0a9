package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// healthTimeout is the timeout of the request.
const healthTimeout = 5 * time.Second

// healthCmd is `booth health`, for containers without other programs.
type healthCmd struct {
	URL string `arg:"" help:"URL that returns 200 when healthy, such as http://127.0.0.1:8000/health."`
}

func (c *healthCmd) run(ctx, _ context.Context, _, _ io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errBadInput, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s returned %s", c.URL, resp.Status)
	}
	return nil
}
