//go:build unix

package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/deploy"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
)

// The health check has the configuration of the program that it asks.
func TestHealth(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	p := start(t, server.URL)
	listen := strings.TrimPrefix(p.address, "http://")
	health := func() (code int, says string) {
		var said bytes.Buffer
		args := []string{"health", "--target-url=" + server.URL, "--data-dir=" + t.TempDir(), "--listen=" + listen}
		code = run(t.Context(), args, nil, io.Discard, &said)
		return code, said.String()
	}
	p.until("it is ready", func() bool { code, _ := health(); return code == success })
	server.Close()
	p.until("it says why it is not", func() bool {
		code, says := health()
		return code == broken && strings.Contains(says, "not ready: 503")
	})
	p.endsWell()
	code, says := health()
	assert.Equal(t, broken, code)
	assert.Contains(t, says, "refused")
}

func TestAsk(t *testing.T) {
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

// The load generator of docker-compose.yaml has a good configuration: it is reached
// from other containers, by its name there, and with a token. Its health check finds
// the same one.
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
