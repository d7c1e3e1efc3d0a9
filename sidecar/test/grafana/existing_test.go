//go:build grafana

package grafana

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/pack"
	"kvbooth/internal/source"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// existing follows docs/existing-grafana.md and docs/api.md. The pages' code blocks run with the test's directories
// and loopback addresses in place of those of the page.
type existing struct {
	t         *testing.T
	root      string // stands for /
	blocks    map[string]string
	used      map[string]bool // blocks that were used, by name
	addresses []string        // the page's addresses and directories, each followed by the test's
	first     string          // address of the load generator
	second    string          // address of the load generator with a certificate
	grafana   string          // URL
	token     string
	client    http.Client
}

// theirs is the UID of this Grafana's own data source.
const theirs = "my-prometheus"

// TestExistingGrafana follows the page with the app's archive, with a Grafana and a Prometheus that have nothing of
// the booth, and the simulated cluster.
func TestExistingGrafana(t *testing.T) {
	follow(t, find(t), boothtest.Simulated(t, boothtest.Programs(t)), nil)
}

// follow follows the page for a cluster. The panels in without have no data, and show the given reason, by dashboard
// and title.
func follow(t *testing.T, installed local.Grafana, target boothtest.Target, without map[string]string) {
	t.Helper()
	for _, name := range []string{"sh", "curl", "unzip", "awk"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("skipped: no %s", name)
		}
	}
	bin := boothtest.Programs(t)
	e := newExisting(t, bin, target)
	prometheus, to := boothtest.Forward(t)
	e.at("prometheus.example.org:9090", prometheus)
	e.startLoadgens(bin)
	to(e.startPrometheus(bin))
	e.run("api-start", "")
	e.run("api-baseline", "")
	e.startGrafana(installed)
	e.checkDataSource()
	e.checkDashboards(without)
	e.checkRules()
	e.checkSecondLoadgen()
	e.checkResults()
	e.checkTLS()
	e.checkUninstall()
	for name := range e.blocks {
		assert.True(t, e.used[name], "no test uses the block %s", name)
	}
}

func newExisting(t *testing.T, bin string, target boothtest.Target) *existing {
	t.Helper()
	module, err := source.Root()
	require.NoError(t, err)
	text := ""
	for _, name := range []string{"existing-grafana.md", "api.md"} {
		page, err := os.ReadFile(filepath.Join(module, "docs", name))
		require.NoError(t, err)
		text += string(page)
	}
	e := &existing{
		t: t, root: t.TempDir(), blocks: blocks(text), used: map[string]bool{}, token: rand.Text(),
		client: http.Client{Timeout: 20 * time.Second}, first: boothtest.AnyPort, second: boothtest.AnyPort,
	}
	e.at("frontend.example.org:8000", target.Frontend)
	e.at("/etc/", e.root+"/etc/")
	e.at("/var/lib/", e.root+"/var/lib/")
	e.at("/usr/local/bin/", bin+"/")
	for i, worker := range target.Workers {
		gpus := "127.0.0.1:1" // serves nothing
		if len(target.GPUs) > 0 {
			gpus = target.GPUs[i]
		}
		e.at(fmt.Sprintf("worker-%d.example.org:8081", i+1), worker)
		e.at(fmt.Sprintf("worker-%d.example.org:9400", i+1), gpus)
	}
	return e
}

// at defines the test's address or directory for one of the page's.
func (e *existing) at(page, test string) { e.addresses = append(e.addresses, page, test) }

// replace replaces the page's addresses in a text about one of the load generators.
func (e *existing) replace(text, loadgen string) string {
	own := []string{"loadgen.example.org:8088", loadgen, "0.0.0.0:8088", loadgen}
	return strings.NewReplacer(append(own, e.addresses...)...).Replace(text)
}

// fence matches a named block, indented as far as its fences are.
var fence = regexp.MustCompile("(?ms)^( *)```[a-z]+ ([a-z.-]+)\n(.*?)^ *```$")

// blocks returns the blocks of pages by name.
func blocks(page string) map[string]string {
	found := map[string]string{}
	for _, match := range fence.FindAllStringSubmatch(page, -1) {
		found[match[2]] = strings.ReplaceAll("\n"+match[3], "\n"+match[1], "\n")[1:]
	}
	return found
}

// block returns a block with the test's addresses and those of a load generator.
func (e *existing) block(name, loadgen string) string {
	e.t.Helper()
	require.Contains(e.t, e.blocks, name, "the pages have no such block")
	e.used[name] = true
	return e.replace(e.blocks[name], loadgen)
}

// write writes a text into a file of the page.
func (e *existing) write(path, text string) {
	e.t.Helper()
	path = filepath.Join(e.root, path)
	require.NoError(e.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(e.t, os.WriteFile(path, []byte(text), 0o600))
}

// run runs a block for the first load generator in a shell, and returns its output.
func (e *existing) run(name, dir string) string {
	e.t.Helper()
	cmd := exec.CommandContext(e.t.Context(), "sh", "-eu", "-c", e.block(name, e.first))
	cmd.Dir = filepath.Join(e.root, dir)
	cmd.Env = append(os.Environ(), "LOADGEN=http://"+e.first, "TOKEN="+e.token, "GRAFANA_LOGIN=admin:"+password)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	require.NoError(e.t, cmd.Run(), "%s: %s%s", name, &out, &problem)
	return out.String()
}

// startLoadgens starts a load generator by the unit's command, and one with a certificate.
func (e *existing) startLoadgens(bin string) {
	e.t.Helper()
	e.run("token", "")
	token, err := os.ReadFile(filepath.Join(e.root, "etc/kvbooth/token"))
	require.NoError(e.t, err)
	e.token = strings.TrimSpace(string(token))
	e.write("my-results.csv", e.block("my-results.csv", e.first))
	e.write("etc/kvbooth/loadgen.yaml", e.block("loadgen.yaml", e.first))
	unit := regexp.MustCompile(`(?m)^ExecStart=(.+)$`).FindStringSubmatch(e.block("loadgen.service", e.first))
	require.NotNil(e.t, unit, "the unit starts nothing")
	command := strings.Fields(unit[1])
	// Short answers and think times keep the machine's load low.
	env := append(os.Environ(), "LOADGEN_MAX_TOKENS=64", "LOADGEN_OUTPUT_TOKENS_MEAN=24", "LOADGEN_OUTPUT_TOKENS_CV=.15",
		"LOADGEN_THINK_TIME=9s", "LOADGEN_START_RATE=40")
	first := &boothtest.Part{
		Prints: boothtest.LoadgenPrints, Ready: "http://" + boothtest.AnyPort + "/readyz",
		Command: process.Command{
			Name: "the load generator", Path: command[0], Args: command[1:], Env: env, Log: boothtest.Log(e.t, "loadgen"),
		},
	}
	first.Run(e.t)
	e.first = first.Address()

	e.certify("etc/kvbooth/tls.crt", "etc/kvbooth/tls.key", "etc/prometheus/kvbooth-ca.crt", "etc/grafana/kvbooth-ca.crt")
	config := e.block("loadgen.yaml", e.second) + e.block("tls.yaml", e.second)
	e.write("etc/kvbooth/west.yaml", strings.Replace(config, "/var/lib/kvbooth", "/var/lib/west", 1))
	program, file := filepath.Join(bin, "loadgen"), "--config="+filepath.Join(e.root, "etc/kvbooth/west.yaml")
	second := &boothtest.Part{Prints: boothtest.LoadgenPrints, Command: process.Command{
		Name: "the load generator with TLS", Path: program, Args: []string{file}, Env: env, Log: boothtest.Log(e.t, "west"),
	}}
	second.Run(e.t)
	e.second = second.Address()
	wait.Eventually(e.t, "the load generator with TLS is healthy", func() (any, bool) {
		health := exec.CommandContext(e.t.Context(), program, "health", file, "--listen="+e.second)
		printed, err := health.CombinedOutput()
		return string(printed), err == nil
	})
}

// certify writes a self-signed certificate for loopback.
func (e *existing) certify(cert, key string, authorities ...string) {
	e.t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	private, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	require.NoError(e.t, err)
	e.write(key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	for _, path := range append(authorities, cert) {
		e.write(path, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	}
}

// startPrometheus starts the existing Prometheus, with its own interval and the page's jobs, and returns its URL.
func (e *existing) startPrometheus(bin string) string {
	e.t.Helper()
	west := strings.Replace(e.block("tls-prometheus.yml", e.second), "job_name: loadgen", "job_name: loadgen-west", 1)
	own := "global: {scrape_interval: 15s}\n"
	config := own + e.block("prometheus.yml", e.first) + west + e.block("several.yml", e.second)
	return boothtest.Prometheus(e.t, bin, config).URL()
}

// startGrafana starts the existing Grafana, which has a data source already, with the page's archive and environment.
func (e *existing) startGrafana(installed local.Grafana) {
	e.t.Helper()
	e.pack("download")
	e.write("var/lib/grafana/plugins/.keep", "")
	e.run("install", "download")
	const provisioning = "etc/grafana/provisioning"
	e.write(provisioning+"/datasources/theirs.yaml", e.replace("apiVersion: 1\ndatasources: [{uid: "+theirs+
		", name: Theirs, type: prometheus, url: 'http://prometheus.example.org:9090', isDefault: true}]\n", e.first))
	var env []string
	for line := range strings.Lines(e.block("grafana.env", e.first)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if strings.HasPrefix(value, "the content of ") {
			value = e.token
		}
		env = append(env, name+"="+value)
	}
	e.grafana = part(e.t, installed, "", theirs, local.GrafanaOptions{
		Dir: e.t.TempDir(), Provisioning: filepath.Join(e.root, provisioning),
		Plugins: map[string]string{local.AppID: filepath.Join(e.root, "var/lib/grafana/plugins", local.AppID)},
		Env:     append(env, "GF_AUTH_ANONYMOUS_ENABLED=false", "GF_SECURITY_ADMIN_PASSWORD="+password),
	}).URL()
	e.at("grafana.example.org:3000", strings.TrimPrefix(e.grafana, "http://"))
}

// pack packs dist for this system alone, with its backend.
func (e *existing) pack(dir string) {
	e.t.Helper()
	module, err := source.Root()
	require.NoError(e.t, err)
	dist := filepath.Join(module, "dist")
	_, err = pack.App(pack.Options{
		Dist: dist, Examples: filepath.Join(module, "provisioning"), Dir: filepath.Join(e.root, dir), Date: time.Unix(
			1<<30, 0),
		Platforms: []pack.Platform{{OS: runtime.GOOS, Arch: runtime.GOARCH}}, Out: io.Discard,
		Build: func(b pack.Backend) error {
			return os.Link(filepath.Join(dist, local.AppBackend()), filepath.Join(b.Dir, local.AppBackend()))
		},
	})
	require.NoError(e.t, err)
}

// ask calls Grafana as its administrator, and decodes the answer.
func (e *existing) ask(method, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(e.t.Context(), method, e.grafana+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.SetBasicAuth("admin", password)
	request.Header.Set("Content-Type", "application/json")
	response, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, content)
	}
	return json.Unmarshal(content, answer)
}

// checkDataSource reads the UID in the page's way.
func (e *existing) checkDataSource() {
	e.t.Helper()
	assert.Contains(e.t, e.run("uid", ""), `"uid":"`+theirs+`"`)
}

// checkRules waits until each rule was evaluated on the existing data source, and requires that none failed.
func (e *existing) checkRules() {
	e.t.Helper()
	var stored []struct {
		UID  string
		Data []struct{ DatasourceUID string }
	}
	wait.Eventually(e.t, "seven rules are there", func() (any, bool) {
		err := e.ask("GET", "/api/v1/provisioning/alert-rules", nil, &stored)
		return fmt.Sprint(len(stored), err), err == nil && len(stored) == 7
	})
	for _, r := range stored {
		assert.Equal(e.t, theirs, r.Data[0].DatasourceUID, r.UID)
	}
	wait.Eventually(e.t, "every rule is evaluated", func() (any, bool) {
		var answer struct {
			Data struct {
				Groups []struct {
					Rules []struct {
						Name, Health, LastError string
						LastEvaluation          time.Time
					}
				}
			}
		}
		if err := e.ask("GET", "/api/prometheus/grafana/api/v1/rules", nil, &answer); err != nil {
			return err, false
		}
		n := 0
		for _, group := range answer.Data.Groups {
			for _, r := range group.Rules {
				require.Empty(e.t, r.LastError, r.Name)
				require.NotEqual(e.t, "error", r.Health, r.Name)
				if !r.LastEvaluation.IsZero() {
					n++
				}
			}
		}
		return fmt.Sprintf("%d of %d", n, len(stored)), n == len(stored)
	})
}

// checkSecondLoadgen requires that the series of the second load generator have their own lane.
func (e *existing) checkSecondLoadgen() {
	e.t.Helper()
	wait.Eventually(e.t, "the second load generator is the lane west", func() (any, bool) {
		query := target{RefID: "A", Expr: `loadgen_workload_running{lane="west"} == 0`, Instant: true}
		got, err := e.query([]target{query})
		return fmt.Sprint(got, err), err == nil && got["A"]
	})
}

// checkResults reads the results in the page's way.
func (e *existing) checkResults() {
	e.t.Helper()
	assert.Regexp(e.t, `(?m)^turn 1 \d+\.\d+ s$`, e.run("api-turns", ""))
	e.run("api-description", "")
	description, err := os.ReadFile(filepath.Join(e.root, "openapi.yaml"))
	require.NoError(e.t, err)
	assert.True(e.t, strings.HasPrefix(string(description), "openapi: 3.1"), "%.60s", description)
	var state api.State
	require.NoError(e.t, json.Unmarshal([]byte(e.run("api-stop", "")), &state))
	assert.NotEqual(e.t, api.PhaseRunning, state.Phase)
}

// checkTLS configures the app for the load generator with the certificate.
func (e *existing) checkTLS() {
	e.t.Helper()
	e.write("etc/grafana/provisioning/plugins/kvbooth.yaml", e.block("tls-app.yaml", e.second))
	e.run("reload", "")
	wait.Eventually(e.t, "the app reaches it over TLS", func() (any, bool) {
		var health struct {
			Status, Message string
			Details         struct{ URL string }
		}
		err := e.ask("GET", "/api/plugins/"+local.AppID+"/health", nil, &health)
		ok := err == nil && health.Status == "OK" && health.Details.URL == "https://"+e.second
		return fmt.Sprint(health, err), ok
	})
}

// checkUninstall removes rules and dashboards in the page's way.
func (e *existing) checkUninstall() {
	e.t.Helper()
	e.write("etc/grafana/provisioning/alerting/kvbooth.yaml", e.block("uninstall-rules.yaml", e.first))
	e.write("etc/grafana/provisioning/plugins/kvbooth.yaml", e.block("uninstall-app.yaml", e.first))
	for _, kind := range []string{"alerting", "plugins"} {
		require.NoError(e.t, e.ask("POST", "/api/admin/provisioning/"+kind+"/reload", nil, new(struct{})))
	}
	var rules []struct{ UID string }
	require.NoError(e.t, e.ask("GET", "/api/v1/provisioning/alert-rules", nil, &rules))
	assert.Empty(e.t, rules)
	wait.Eventually(e.t, "the app's dashboards are gone", func() (any, bool) {
		var left []struct{ UID string }
		err := e.ask("GET", "/api/search?type=dash-db", nil, &left)
		return fmt.Sprint(left, err), err == nil && len(left) == 0
	})
}
