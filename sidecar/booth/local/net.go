package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"kvbooth/sidecar/process"
)

const (
	pollInterval = 100 * time.Millisecond
	getTimeout   = 2 * time.Second
	getLimit     = 8 << 20 // bytes; a frontend's /metrics is far below
)

// Ready waits until a URL responds with a status of 2xx. It returns an error with the last failure when ctx ends, or
// when the server's process exits. p may be nil.
func Ready(ctx context.Context, url string, p *process.Process) error {
	return poll(ctx, p, func(ctx context.Context) error {
		_, err := get(ctx, url)
		return err
	})
}

// poll calls check until it returns nil. It returns an error when ctx ends or a process exits. p may be nil.
func poll(ctx context.Context, p *process.Process, check func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if p != nil && p.Exited() { // even if the check succeeds: another server may have the address
			return errors.Join(fmt.Errorf("%s exited before it was ready", p.Name()), p.Wait())
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; the last attempt failed with: %w", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// get returns the body at a URL. A status other than 2xx is an error.
func get(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, getLimit))
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return body, nil
}

// getJSON reads the JSON at a URL into v.
func getJSON(ctx context.Context, url string, v any) error {
	body, err := get(ctx, url)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("GET %s: %w", url, err)
	}
	return nil
}

// client keeps no idle connections, because they would outlive their processes, and uses no proxy, because all
// requests go to loopback.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
