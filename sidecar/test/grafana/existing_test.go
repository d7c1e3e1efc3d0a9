//go:build grafana

package grafana

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"kvbooth/internal/pack"
	"kvbooth/internal/source"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// existing follows docs/existing-grafana.md and docs/api.md. Its blocks are run with the folders of
// the page below one of the test's, and with addresses of loopback.
type existing struct {
	t      *testing.T
	root   string // stands for /
	blocks map[string]string
	used   map[string]bool   // of the blocks
	here   *strings.Replacer // the page's addresses and folders to the test's
	west   *strings.Replacer // the same, for the second load generator
	token  string
	client http.Client

	grafana, first, second string // URLs
}

// theirs is the uid of the data source that this Grafana has already.
const theirs = "my-prometheus"

// TestExistingGrafana follows the page with the app's archive, in a Grafana and a
// Prometheus that know nothing of the booth, on the simulated cluster.
func TestExistingGrafana(t *testing.T) {
	t.Parallel()
	installed, err := local.FindGrafana(t.Context())
	boothtest.Need(t, err, local.ErrNoGrafana, "no Grafana")
	ports := boothtest.NewPorts(firstPort + 1000)
	follow(t, installed, boothtest.Simulated(t, boothtest.Programs(t), ports), ports, nil)
}

// follow follows the page for a cluster. The panels without data, by dashboard and
// title, give the reason that is told here.
func follow(t *testing.T, installed local.Grafana, target boothtest.Target, ports *boothtest.Ports, without map[string]string) {
	t.Helper()
	for _, name := range []string{"sh", "curl", "unzip", "awk"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("skipped: no %s", name)
		}
	}
	bin := boothtest.Programs(t)
	e := newExisting(t, bin, target, ports)

	e.startLoadgens(bin)
	e.startPrometheus(bin)
	e.run(e.first, "api-start", "")
	e.run(e.first, "api-baseline", "")
	e.startGrafana(installed)
	e.checkDataSource()
	e.checkDashboards(without)
	e.checkRules()
	e.checkSecondLoadgen()
	e.checkResults()
	e.checkTLS()
	e.checkUninstall()
	e.checkUsed()
}

func newExisting(t *testing.T, bin string, target boothtest.Target, ports *boothtest.Ports) *existing {
	t.Helper()
	module, err := source.Root()
	check(t, err)
	text := ""
	for _, name := range []string{"existing-grafana.md", "api.md"} {
		page, err := os.ReadFile(filepath.Join(module, "docs", name))
		check(t, err)
		text += string(page)
	}
	e := &existing{t: t, root: t.TempDir(), blocks: blocks(text), used: map[string]bool{}, client: http.Client{Timeout: 20 * time.Second}}
	free := func() string { return process.Loopback(ports.Take(t, 1)) }
	first, second, prometheus, grafana := free(), free(), free(), free()
	e.first, e.second, e.grafana = "http://"+first, "https://"+second, "http://"+grafana
	e.token = rand.Text()
	addresses := []string{
		"frontend.example.org:8000", target.Frontend,
		"prometheus.example.org:9090", prometheus, "grafana.example.org:3000", grafana,
		"/etc/", e.root + "/etc/", "/var/lib/", e.root + "/var/lib/", "/usr/local/bin/", bin + "/",
	}
	for i, worker := range target.Workers {
		gpus := free() // nobody answers there
		if len(target.GPUs) > 0 {
			gpus = target.GPUs[i]
		}
		addresses = append(addresses, fmt.Sprintf("worker-%d.example.org:8081", i+1), worker, fmt.Sprintf("worker-%d.example.org:9400", i+1), gpus)
	}
	for name, to := range map[**strings.Replacer]string{&e.here: first, &e.west: second} {
		*name = strings.NewReplacer(append(slices.Clone(addresses), "loadgen.example.org:8088", to, "0.0.0.0:8088", to)...)
	}
	return e
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fence is a block with a name, indented as far as its fences are.
var fence = regexp.MustCompile("(?ms)^( *)```[a-z]+ ([a-z.-]+)\n(.*?)^ *```$")

// blocks are the blocks of pages, by their names.
func blocks(page string) map[string]string {
	found := map[string]string{}
	for _, match := range fence.FindAllStringSubmatch(page, -1) {
		found[match[2]] = strings.ReplaceAll("\n"+match[3], "\n"+match[1], "\n")[1:]
	}
	return found
}

// block is one of them, with the test's addresses.
func (e *existing) block(name string, to *strings.Replacer) string {
	e.t.Helper()
	text, ok := e.blocks[name]
	if !ok {
		e.t.Fatalf("the pages have no block %s", name)
	}
	e.used[name] = true
	return to.Replace(text)
}

// checkUsed holds that no block of the pages was left out, as they say.
func (e *existing) checkUsed() {
	e.t.Helper()
	for name := range e.blocks {
		if !e.used[name] {
			e.t.Errorf("the block %s is used by no test", name)
		}
	}
}

// write puts a block, or what was made of it, into a file of the page.
func (e *existing) write(path, text string) {
	e.t.Helper()
	path = filepath.Join(e.root, path)
	check(e.t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(e.t, os.WriteFile(path, []byte(text), 0o600))
}

// run has a shell run a block for one of the load generators, and gives what it prints.
func (e *existing) run(loadgen, name, dir string) string {
	e.t.Helper()
	cmd := exec.CommandContext(e.t.Context(), "sh", "-eu", "-c", e.block(name, e.here))
	cmd.Dir = filepath.Join(e.root, dir)
	cmd.Env = append(os.Environ(), "LOADGEN="+loadgen, "TOKEN="+e.token, "GRAFANA_LOGIN=admin:"+password)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		e.t.Fatalf("%s: %v\n%s%s", name, err, &out, &problem)
	}
	return out.String()
}

// startLoadgens starts one by the command of the unit, and one with a certificate.
func (e *existing) startLoadgens(bin string) {
	e.t.Helper()
	e.run(e.first, "token", "")
	token, err := os.ReadFile(filepath.Join(e.root, "etc/kvbooth/token"))
	check(e.t, err)
	e.token = strings.TrimSpace(string(token))
	e.write("my-results.csv", e.block("my-results.csv", e.here))
	e.write("etc/kvbooth/loadgen.yaml", e.block("loadgen.yaml", e.here))
	unit := regexp.MustCompile(`(?m)^ExecStart=(.+)$`).FindStringSubmatch(e.block("loadgen.service", e.here))
	if unit == nil {
		e.t.Fatal("the unit starts nothing")
	}
	command := strings.Fields(unit[1])
	// Short answers and users who think keep the machine quiet.
	env := append(os.Environ(), "LOADGEN_MAX_TOKENS=64", "LOADGEN_OUTPUT_TOKENS_MEAN=24", "LOADGEN_OUTPUT_TOKENS_CV=.15", "LOADGEN_THINK_TIME=9s", "LOADGEN_START_RATE=40")
	first := &boothtest.Part{Ready: e.first + "/readyz", Command: process.Command{
		Name: "the load generator", Path: command[0], Args: command[1:], Env: env, Log: boothtest.Log(e.t, "loadgen"),
	}}
	first.Run(e.t)

	e.certify("etc/kvbooth/tls.crt", "etc/kvbooth/tls.key", "etc/prometheus/kvbooth-ca.crt", "etc/grafana/kvbooth-ca.crt")
	config := e.block("loadgen.yaml", e.west) + e.block("tls.yaml", e.west)
	e.write("etc/kvbooth/west.yaml", strings.Replace(config, "/var/lib/kvbooth", "/var/lib/west", 1))
	args := []string{"--config", filepath.Join(e.root, "etc/kvbooth/west.yaml")}
	second := process.Command{Name: "the load generator with TLS", Path: filepath.Join(bin, "loadgen"), Args: args, Env: env, Log: boothtest.Log(e.t, "west")}
	tls, err := process.Start(second)
	check(e.t, err)
	e.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.t.Context()), 10*time.Second)
		defer cancel()
		tls.Stop(ctx)
	})
	e.eventually("the load generator with TLS is healthy", func() error {
		said, err := exec.CommandContext(e.t.Context(), second.Path, append([]string{"health"}, args...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		return nil
	})
}

// certify makes a certificate for loopback that is its own authority.
func (e *existing) certify(cert, key string, authorities ...string) {
	e.t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(e.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	check(e.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	check(e.t, err)
	e.write(key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	for _, path := range append(authorities, cert) {
		e.write(path, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	}
}

// startPrometheus starts theirs, with its own interval and the page's jobs.
func (e *existing) startPrometheus(bin string) {
	e.t.Helper()
	west := strings.Replace(e.block("tls-prometheus.yml", e.west), "job_name: loadgen", "job_name: loadgen-west", 1)
	e.write("etc/prometheus/prometheus.yml", "global: {scrape_interval: 15s}\n"+e.block("prometheus.yml", e.here)+west+e.block("several.yml", e.west))
	address := e.here.Replace("prometheus.example.org:9090")
	prometheus := &boothtest.Part{Ready: "http://" + address + "/-/ready", Command: process.Command{
		Name: "Prometheus", Path: filepath.Join(bin, "booth"), Log: boothtest.Log(e.t, "prometheus"),
		Args: []string{"prometheus", "--config-file=" + filepath.Join(e.root, "etc/prometheus/prometheus.yml"), "--data-dir=" + e.t.TempDir(), "--listen=" + address},
	}}
	prometheus.Run(e.t)
}

// startGrafana starts theirs, which has a data source already, with the archive and the
// environment as the page has them.
func (e *existing) startGrafana(installed local.Grafana) {
	e.t.Helper()
	e.pack("download")
	e.write("var/lib/grafana/plugins/.keep", "")
	e.run(e.first, "install", "download")
	const provisioning = "etc/grafana/provisioning"
	e.write(provisioning+"/datasources/theirs.yaml", e.here.Replace(
		"apiVersion: 1\ndatasources: [{uid: "+theirs+", name: Theirs, type: prometheus, url: 'http://prometheus.example.org:9090', isDefault: true}]\n"))
	var env []string
	for line := range strings.Lines(e.block("grafana.env", e.here)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if strings.HasPrefix(value, "the content of ") {
			value = e.token
		}
		env = append(env, name+"="+value)
	}
	address := e.here.Replace("grafana.example.org:3000")
	_, port, err := net.SplitHostPort(address)
	check(e.t, err)
	number, err := net.LookupPort("tcp", port)
	check(e.t, err)
	command, err := installed.Command(local.GrafanaOptions{
		Dir: e.t.TempDir(), Provisioning: filepath.Join(e.root, provisioning), Port: number, Log: boothtest.Log(e.t, "grafana"),
		Plugins: map[string]string{local.AppID: filepath.Join(e.root, "var/lib/grafana/plugins", local.AppID)},
		Env:     append(env, "GF_AUTH_ANONYMOUS_ENABLED=false", "GF_SECURITY_ADMIN_PASSWORD="+password),
	})
	check(e.t, err)
	grafana := &boothtest.Part{Command: command, Ready: whole(e.grafana, theirs)}
	grafana.Run(e.t)
}

// pack packs what is in dist for this system alone, with the backend that is there.
func (e *existing) pack(dir string) {
	e.t.Helper()
	module, err := source.Root()
	check(e.t, err)
	dist := filepath.Join(module, "dist")
	_, err = pack.App(pack.Options{
		Dist: dist, Examples: filepath.Join(module, "provisioning"), Dir: filepath.Join(e.root, dir), Date: time.Unix(1<<30, 0),
		Platforms: []pack.Platform{{OS: runtime.GOOS, Arch: runtime.GOARCH}}, Out: io.Discard,
		Build: func(b pack.Backend) error {
			return os.Link(filepath.Join(dist, local.AppBackend()), filepath.Join(b.Dir, local.AppBackend()))
		},
	})
	check(e.t, err)
}

// patience is what a condition may take on a machine that is busy.
const patience = time.Minute

// eventually waits until there is no error any more.
func (e *existing) eventually(what string, holds func() error) {
	e.t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(500*time.Millisecond)
	defer tick.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			e.t.Fatalf("it did not come true that %s: %v", what, err)
		}
	}
}

// ask calls Grafana as its administrator, and decodes what it answers.
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
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, said)
	}
	return json.Unmarshal(said, answer)
}

// checkDataSource finds the uid as the page says.
func (e *existing) checkDataSource() {
	e.t.Helper()
	if said := e.run(e.first, "uid", ""); !strings.Contains(said, `"uid":"`+theirs+`"`) {
		e.t.Errorf("no data source %s: %s", theirs, said)
	}
}

// checkRules waits until every rule was evaluated, each on their data source, and holds
// that none of them failed.
func (e *existing) checkRules() {
	e.t.Helper()
	var stored []struct {
		UID  string
		Data []struct{ DatasourceUID string }
	}
	e.eventually("six rules are there", func() error {
		err := e.ask("GET", "/api/v1/provisioning/alert-rules", nil, &stored)
		if err == nil && len(stored) != 6 {
			err = fmt.Errorf("there are %d", len(stored))
		}
		return err
	})
	for _, r := range stored {
		if r.Data[0].DatasourceUID != theirs {
			e.t.Errorf("the rule %s asks %q", r.UID, r.Data[0].DatasourceUID)
		}
	}
	e.eventually("every rule is evaluated", func() error {
		var told struct {
			Data struct {
				Groups []struct {
					Rules []struct {
						Name, Health, LastError string
						LastEvaluation          time.Time
					}
				}
			}
		}
		if err := e.ask("GET", "/api/prometheus/grafana/api/v1/rules", nil, &told); err != nil {
			return err
		}
		n := 0
		for _, group := range told.Data.Groups {
			for _, r := range group.Rules {
				if r.LastError != "" || r.Health == "error" {
					e.t.Fatalf("%s: %s %s", r.Name, r.Health, r.LastError)
				}
				if !r.LastEvaluation.IsZero() {
					n++
				}
			}
		}
		if n != len(stored) {
			return fmt.Errorf("%d of %d", n, len(stored))
		}
		return nil
	})
}

// checkSecondLoadgen holds that the series of the second one have its own lane.
func (e *existing) checkSecondLoadgen() {
	e.t.Helper()
	e.eventually("the second load generator is the lane west", func() error {
		if got, err := e.query([]target{{RefID: "A", Expr: `loadgen_workload_running{lane="west"} == 0`, Instant: true}}); err != nil || !got["A"] {
			return fmt.Errorf("%v, %w", got, err)
		}
		return nil
	})
}

// checkResults reads what was measured as the page shows it.
func (e *existing) checkResults() {
	e.t.Helper()
	if means := e.run(e.first, "api-turns", ""); !regexp.MustCompile(`(?m)^turn 1 \d+\.\d+ s$`).MatchString(means) {
		e.t.Errorf("no mean of the first turns: %s", means)
	}
	e.run(e.first, "api-description", "")
	description, err := os.ReadFile(filepath.Join(e.root, "openapi.yaml"))
	check(e.t, err)
	if !strings.HasPrefix(string(description), "openapi: 3.1") {
		e.t.Errorf("no description: %.60s", description)
	}
	var state api.State
	check(e.t, json.Unmarshal([]byte(e.run(e.first, "api-stop", "")), &state))
	if state.Phase == api.PhaseRunning {
		e.t.Error("it goes on")
	}
}

// checkTLS leads the app to the load generator with the certificate.
func (e *existing) checkTLS() {
	e.t.Helper()
	e.write("etc/grafana/provisioning/plugins/kvbooth.yaml", e.block("tls-app.yaml", e.west))
	e.run(e.second, "reload", "")
	e.eventually("the app reaches it over TLS", func() error {
		var health struct {
			Status, Message string
			Details         struct{ URL string }
		}
		err := e.ask("GET", "/api/plugins/"+local.AppID+"/health", nil, &health)
		if err == nil && (health.Status != "OK" || health.Details.URL != e.second) {
			err = fmt.Errorf("%+v", health)
		}
		return err
	})
}

// checkUninstall takes rules and dashboards away as the page does.
func (e *existing) checkUninstall() {
	e.t.Helper()
	e.write("etc/grafana/provisioning/alerting/kvbooth.yaml", e.block("uninstall-rules.yaml", e.here))
	e.write("etc/grafana/provisioning/plugins/kvbooth.yaml", e.block("uninstall-app.yaml", e.here))
	for _, kind := range []string{"alerting", "plugins"} {
		check(e.t, e.ask("POST", "/api/admin/provisioning/"+kind+"/reload", nil, new(struct{})))
	}
	var rules []struct{ UID string }
	check(e.t, e.ask("GET", "/api/v1/provisioning/alert-rules", nil, &rules))
	if len(rules) != 0 {
		e.t.Errorf("rules are left: %v", rules)
	}
	e.eventually("the app's dashboards are gone", func() error {
		var left []struct{ UID string }
		if err := e.ask("GET", "/api/search?type=dash-db", nil, &left); err != nil || len(left) > 0 {
			return fmt.Errorf("%v, %w", left, err)
		}
		return nil
	})
}
