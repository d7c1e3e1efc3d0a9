package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"kvbooth/sidecar/cmd/loadgen/internal/config"
)

// healthWithin is what an answer may take.
const healthWithin = 5 * time.Second

// health asks the load generator that listens there whether it is ready, as the
// health check of a container does. The error is what it says.
func health(ctx context.Context, conf *config.Config) error {
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme(conf)+"://"+ask(conf.Listen)+"/readyz", nil)
	if err != nil {
		return err
	}
	client, err := healthClient(conf)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		return fmt.Errorf("not ready: %s: %s", resp.Status, strings.TrimSpace(string(said)))
	}
	return nil
}

// ask is where a server that listens on an address is asked: one that listens on
// all of them, on loopback.
func ask(listen string) string {
	host, port, _ := net.SplitHostPort(listen) // checked by config
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip.Is6() {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}
