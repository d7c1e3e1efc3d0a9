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

// healthWithin is the timeout of an answer.
const healthWithin = 5 * time.Second

// health requests the readiness of the load generator on this machine, as a container's health check does. It returns
// the reported reason as an error.
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

// ask returns the address to request: of a server that listens on all addresses, the loopback address.
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
