package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	pollEvery    = 100 * time.Millisecond
	answerWithin = 2 * time.Second
	answerLimit  = 8 << 20 // bytes; a frontend's /metrics is far below
	lastPort     = 65535
)

// FreePorts finds n ports that are free on loopback, the first at or above from,
// ascending. Nothing holds them: a program that takes one of them first wins.
func FreePorts(from, n int) ([]int, error) {
	ports := make([]int, 0, n)
	for port := from; port <= lastPort && len(ports) < n; port++ {
		listener, err := net.Listen("tcp", Loopback(port))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	if len(ports) < n {
		return nil, fmt.Errorf("of the ports from %d on, %d are free on loopback and %d are needed", from, len(ports), n)
	}
	return ports, nil
}

// Loopback is the address of a port on loopback.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Ready waits until a URL answers with a status of 2xx. It gives up when ctx ends,
// or when the process that is to answer does, and says what it got last; a nil
// process is taken to live.
func Ready(ctx context.Context, url string, p *Process) error {
	return poll(ctx, func(ctx context.Context) error {
		_, err := get(ctx, url)
		return err
	}, p)
}

// poll calls check until it gives nil. It gives up when ctx or a process ends.
func poll(ctx context.Context, check func(context.Context) error, processes ...*Process) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		for _, p := range processes {
			if p != nil && ended(p) {
				return errors.Join(fmt.Errorf("%s ended before it was ready", p.name), p.Wait())
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w, and the last try gave: %w", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

func ended(p *Process) bool {
	select {
	case <-p.done:
		return true
	default:
		return false
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
