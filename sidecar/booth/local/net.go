package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"kvbooth/sidecar/process"
)

const (
	pollEvery    = 100 * time.Millisecond
	answerWithin = 2 * time.Second
	answerLimit  = 8 << 20 // bytes; a frontend's /metrics is far below
)

// Ready waits until a URL answers with a status of 2xx. It gives up when ctx ends,
// or when the process that is to answer does, and says what it got last; a nil
// process is taken to live.
func Ready(ctx context.Context, url string, p *process.Process) error {
	return poll(ctx, func(ctx context.Context) error {
		_, err := get(ctx, url)
		return err
	}, p)
}

// poll calls check until it gives nil. It gives up when ctx or a process ends.
func poll(ctx context.Context, check func(context.Context) error, processes ...*process.Process) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		err := check(ctx)
		for _, p := range processes {
			if p != nil && p.Exited() { // also where the check succeeds: another server may have the address
				return errors.Join(fmt.Errorf("%s exited before it was ready", p.Name()), p.Wait())
			}
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

// get reads what a URL answers; a status other than 2xx is an error.
func get(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
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
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return body, nil
}

// client keeps no connections, since a process that is gone would leave them
// behind, and uses no proxy, since all that it asks is on loopback.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
