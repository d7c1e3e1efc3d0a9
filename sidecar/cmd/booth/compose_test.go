package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/deploy"
	"kvbooth/internal/output"
	"kvbooth/internal/source"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
)

// parse reads a command line of this program, without running it.
func parse(t *testing.T, args []string) *commands {
	t.Helper()
	c := new(commands)
	_, err := kong.Must(c, variables(), kong.Writers(io.Discard, io.Discard)).Parse(args)
	require.NoError(t, err)
	return c
}

// composed returns the simulated cluster of docker-compose.yaml, with its addresses among the containers.
func composed(t *testing.T) (cluster clusterCmd, at addresses) {
	t.Helper()
	args, _, err := deploy.Service(t.Context(), "cluster")
	require.NoError(t, err)
	cluster = parse(t, args).Cluster
	o, err := cluster.simulation()
	require.NoError(t, err)
	at.frontend = inside(cluster.Port)
	for i := range o.Profile.Workers {
		at.workers = append(at.workers, inside(cluster.WorkerPort+i))
		at.gpus = append(at.gpus, inside(cluster.GPUPort+i))
	}
	return cluster, at
}

// inside returns an address of the cluster among the containers.
func inside(port int) string { return net.JoinHostPort("cluster", strconv.Itoa(port)) }

func TestComposedClusterIsTheDemos(t *testing.T) {
	cluster, _ := composed(t)
	require.Equal(t, parse(t, []string{"demo"}).Demo.simFlags, cluster.simFlags)
	require.Equal(t, "0.0.0.0", cluster.Host)
	require.Equal(t, []string{"cluster"}, cluster.Hosts)
	require.Equal(t, "/data", filepath.Dir(cluster.StateFile), "the only writable folder")

	health, err := deploy.HealthCheck(t.Context(), "cluster")
	require.NoError(t, err)
	require.Equal(t, "/booth", health[0])
	require.Equal(t, "http://"+process.Loopback(cluster.Port)+"/health", parse(t, health[1:]).Health.URL)
}

func TestComposedLoadgenHasTheDemosSettings(t *testing.T) {
	_, at := composed(t)
	demo := &parse(t, []string{"demo"}).Demo
	b := &booth{kind: demo, flags: demo.common(), backend: &simCluster{at: at}}
	want := map[string]string{}
	for _, arg := range b.loadgenArgs("http://"+at.frontend, "http://prometheus:9090", "0.0.0.0:8088") {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		want["LOADGEN_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = value
	}
	for _, setting := range b.defaults() {
		name, value, _ := strings.Cut(setting, "=")
		want[name] = value
	}
	delete(want, "LOADGEN_DATA_DIR") // set in the image
	want["LOADGEN_HOSTS"], want["LOADGEN_TOKEN"] = "loadgen", deploy.Token

	args, environ, err := deploy.Service(t.Context(), "loadgen")
	require.NoError(t, err)
	require.Empty(t, args)
	have := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		have[name] = value
	}
	require.Equal(t, want, have)
}

func TestComposedPrometheusHasTheDemosConfiguration(t *testing.T) {
	root, err := source.Root()
	require.NoError(t, err)
	committed, err := os.ReadFile(filepath.Join(root, "deploy", "prometheus.yml"))
	require.NoError(t, err)
	_, at := composed(t)
	written := filepath.Join(t.TempDir(), "prometheus.yml")
	require.NoError(t, local.WriteScrapeConfig(written, scrapeInterval, targets(at, "loadgen:8088", "prometheus:9090")))
	text, err := os.ReadFile(written)
	require.NoError(t, err)
	require.YAMLEq(t, string(text), string(committed))

	project, err := deploy.Compose(t.Context(), deploy.Variables...)
	require.NoError(t, err)
	service := project.Services["prometheus"]
	require.Equal(t, "prom/prometheus:v"+local.PrometheusRelease, service.Image)
	own := local.PrometheusCommand("",
		local.PrometheusOptions{Config: "/etc/prometheus/prometheus.yml", Data: "/prometheus"})
	for _, argument := range service.Command {
		require.Contains(t, own.Args, argument)
	}
}

func TestHealthExitCode(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer http.DefaultClient.CloseIdleConnections()
	defer server.Close()
	for url, want := range map[string]int{
		server.URL + "/health": success, server.URL: failure, "://": badInput, "http://127.0.0.1:1": failure,
	} {
		var out output.Buffer
		require.Equal(t, want, run(t.Context(), t.Context(), []string{"health", url}, &out, &out), "%s: %s", url, &out)
	}
}

func TestVersion(t *testing.T) {
	var out output.Buffer
	require.Equal(t, success, run(t.Context(), t.Context(), []string{"version"}, &out, &out))
	require.Regexp(t, `^booth \d+\.\d+\.\d+-dev`, out.String())
}
