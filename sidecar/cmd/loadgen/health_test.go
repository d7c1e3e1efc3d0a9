//go:build unix

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/deploy"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
)

// health runs the health check of a load generator with a configuration.
func (p *program) health(target string, more ...string) (code int, stderr string) {
	p.t.Helper()
	_, address, _ := strings.Cut(p.address, "://")
	args := append([]string{"health", "--target-url=" + target, "--listen=" + address}, more...)
	code, _, stderr = command(p.t, args...)
	return code, stderr
}

func TestHealth(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	p := start(t, server.URL)
	p.eventually("it is ready", func() bool { code, _ := p.health(server.URL); return code == success })
	server.Close()
	p.eventually("it reports why it is not ready", func() bool {
		code, stderr := p.health(server.URL)
		return code == broken && strings.Contains(stderr, "not ready: 503")
	})
	p.endsWell()
	code, stderr := p.health(server.URL)
	assert.Equal(t, broken, code)
	assert.Contains(t, stderr, "refused")
}

func TestHealthAddress(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8088": "127.0.0.1:8088",
		"localhost:8088": "localhost:8088",
		"10.1.2.3:8088":  "10.1.2.3:8088",
		"0.0.0.0:8088":   "127.0.0.1:8088", // where a container listens
		"[::]:8088":      "[::1]:8088",
	} {
		require.Equal(t, want, ask(listen))
	}
}

// The load generator of docker-compose.yaml has a valid configuration, with a token and the name that other containers
// use. Its health check uses the same address.
func TestComposed(t *testing.T) {
	args, environ, err := deploy.Service(t.Context(), "loadgen")
	require.NoError(t, err)
	environ = append(environ, "LOADGEN_DATA_DIR=/data") // the image's
	c, command, err := config.Load(args, environ, io.Discard)
	require.NoError(t, err)
	require.Equal(t, config.Run, command)
	require.Equal(t, "0.0.0.0:8088", c.Listen)
	require.Equal(t, []string{"loadgen"}, c.Hosts)
	require.Equal(t, deploy.Token, string(c.Token))

	health, err := deploy.HealthCheck(t.Context(), "loadgen")
	require.NoError(t, err)
	require.Equal(t, "/loadgen", health[0])
	c, command, err = config.Load(health[1:], environ, io.Discard)
	require.NoError(t, err)
	require.Equal(t, config.Health, command)
	require.Equal(t, "127.0.0.1:8088", ask(c.Listen))
}
