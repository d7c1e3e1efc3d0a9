package kubernetes

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kvbooth/internal/kube"
	"kvbooth/internal/source"
	"kvbooth/sidecar/process"
)

const (
	// Namespace is where everything of a test lives.
	Namespace = "default"

	startWithin = 2 * time.Minute // quiet: five seconds
	stopWithin  = 10 * time.Second
	pollEvery   = 50 * time.Millisecond

	ports     = 6 // that a control plane listens on
	firstPort = 21000
	lastPort  = 29000
)

// ControlPlane is a running Kubernetes. Its methods are safe for concurrent use.
type ControlPlane struct {
	program, dir string
	token        string                  // of the cluster's administrator
	kind         schema.GroupVersionKind // of its DynamoGraphDeployments
	certificate  []byte                  // of the API server, PEM; it signed itself
	config       *rest.Config
	client       client.Client // the administrator's, without a cache
	processes    []*process.Process
	logs         []string
}

// Start brings a control plane up on free ports of loopback, with the resource of DynamoGraphDeployments and without a
// node, and ends it with the test, before whose end its kubeconfigs are of no use to anybody. It skips the test where
// the program is missing. The programs end, too, where the test process is killed (Linux).
func Start(t testing.TB) *ControlPlane {
	t.Helper()
	return startWith(t, kind)
}

// startWith is Start with DynamoGraphDeployments of a version.
func startWith(t testing.TB, kind schema.GroupVersionKind) *ControlPlane {
	t.Helper()
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	program, err := kube.Find(root)
	if errors.Is(err, kube.ErrNotBuilt) {
		t.Skipf("skipped: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &ControlPlane{program: program, dir: t.TempDir(), token: rand.Text(), kind: kind}
	t.Cleanup(func() { c.stop(t) })
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	began := time.Now()
	if err := c.start(ctx); err != nil {
		t.Fatalf("start Kubernetes: %v", err)
	}
	t.Logf("Kubernetes is ready after %.1f s", time.Since(began).Seconds())
	return c
}

// start starts the programs in the order in which they need one another, and waits until the last has what it needs.
func (c *ControlPlane) start(ctx context.Context) error {
	free, err := process.FreePorts(firstPort+mathrand.IntN(lastPort-firstPort), ports)
	if err != nil {
		return err
	}
	etcd, peer, api := "http://"+process.Loopback(free[0]), "http://"+process.Loopback(free[1]),
		"https://"+process.Loopback(free[2])
	if err := errors.Join(c.writeKeys(), os.WriteFile(c.path("tokens.csv"),
		[]byte(c.token+",admin,admin,system:masters\n"), 0o600)); err != nil {
		return err
	}
	if err := c.writeKubeconfig("admin.kubeconfig", api, c.token); err != nil {
		return err
	}
	if err := c.writeStages(ctx); err != nil {
		return err
	}
	if err := c.connect(api); err != nil {
		return err
	}
	err = c.run("etcd", "--data-dir="+c.path("etcd"), "--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer, "--unsafe-no-fsync", "--log-level=warn")
	if err != nil {
		return err
	}
	err = c.run("kube-apiserver", "--etcd-servers="+etcd, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", free[2]),
		"--tls-cert-file="+c.path("server.crt"), "--tls-private-key-file="+c.path("server.key"),
		"--cert-dir="+c.path("certs"), "--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file="+c.path("accounts.key"),
		"--service-account-key-file="+c.path("accounts.key"), "--token-auth-file="+c.path("tokens.csv"),
		"--authorization-mode=RBAC", "--endpoint-reconciler-type=none")
	if err != nil {
		return err
	}
	if err := c.await(ctx, "the API server is ready", c.serves); err != nil {
		return err
	}
	admin := "--kubeconfig=" + c.Kubeconfig()
	err = errors.Join(
		c.run("kube-controller-manager", admin, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", free[3]),
			"--cert-dir="+c.path("controllers"), "--leader-elect=false",
			"--service-account-private-key-file="+c.path("accounts.key"), "--root-ca-file="+c.path("server.crt"),
			"--use-service-account-credentials=false"),
		c.run("kube-scheduler", admin, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", free[4]),
			"--cert-dir="+c.path("scheduler"), "--leader-elect=false"),
		// Without leases of its own KWOK has the controllers find every node lost after 40 s.
		c.run("kwok", admin, "--manage-all-nodes=true", "--config="+c.path("stages.yaml"),
			"--server-address="+process.Loopback(free[5]), "--node-lease-duration-seconds=40"),
	)
	if err != nil {
		return err
	}
	if err := c.define(ctx); err != nil {
		return err
	}
	return c.await(ctx, "the controllers have made the service account "+Namespace, c.populated)
}

func (c *ControlPlane) path(name string) string { return filepath.Join(c.dir, name) }

// run starts one of the programs, which is stopped with the others.
func (c *ControlPlane) run(name string, args ...string) error {
	log := c.path(name + ".log")
	p, err := process.Start(process.Command{Name: name, Path: c.program, Args: append([]string{name}, args...), Log: log})
	if err == nil {
		c.processes, c.logs = append(c.processes, p), append(c.logs, log)
	}
	return err
}

// stop ends the programs, the last one first: an API server whose etcd has gone lingers.
func (c *ControlPlane) stop(t testing.TB) {
	for i := len(c.processes) - 1; i >= 0; i-- {
		ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
		c.processes[i].Stop(ctx)
		cancel()
	}
	if t.Failed() {
		for _, log := range c.logs {
			t.Logf("%s:\n%s", filepath.Base(log), process.Tail(log))
		}
	}
}

// await polls until check gives nil, or a program or ctx ends.
func (c *ControlPlane) await(ctx context.Context, what string, check func(context.Context) error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		for _, p := range c.processes {
			select {
			case <-p.Done():
				return errors.Join(fmt.Errorf("waiting until %s: %w", what, err), p.Wait())
			default:
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w; the last try gave: %w", what, context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// serves asks the API server whether it is ready.
func (c *ControlPlane) serves(ctx context.Context) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.certificate)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.config.Host+"/readyz", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := (&http.Client{Transport: transport, Timeout: 2 * time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("/readyz: %s: %s", response.Status, bytes.TrimSpace(body))
	}
	return err
}

// writeStages asks the program how KWOK is to play nodes and pods.
func (c *ControlPlane) writeStages(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, c.program, "stages")
	var said strings.Builder
	cmd.Stderr = &said
	stages, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("kube stages: %w: %s", err, said.String())
	}
	return os.WriteFile(c.path("stages.yaml"), stages, 0o600)
}

// writeKeys makes the certificate of the API server, and the key of the service accounts' tokens.
func (c *ControlPlane) writeKeys() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: now.Add(-time.Hour),
		NotAfter:              now.Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames: []string{"localhost", "kubernetes.default.svc"},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	c.certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	accounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(c.path("server.crt"), c.certificate, 0o600), c.writeKey("server.key", key),
		c.writeKey("accounts.key", accounts))
}

func (c *ControlPlane) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(c.path(name), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}
