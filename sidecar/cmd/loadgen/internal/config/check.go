package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/cluster/router"
	"kvbooth/sidecar/loadgen/server"
	"kvbooth/sidecar/loadgen/store"
)

// Check checks every field by its own rules, and fields that depend on each other together. The error is an
// [api.FieldError].
func (c *Config) Check() error {
	m := newModel(*c, io.Discard)
	for _, f := range m.fields {
		scratch := reflect.New(f.flag.Target.Type()).Elem()
		if err := f.set(scratch, format(f.flag.Target)); err != nil {
			return err
		}
	}
	for _, s := range c.secrets() {
		if err := s.check(); err != nil {
			return err
		}
	}
	for _, check := range []func() error{
		c.checkMode, c.checkRequired, c.checkTwin, c.checkOutput, c.checkAgainst, c.checkChurn,
		c.checkSweep, c.checkShadow, c.Trace.check, c.checkTraffic, c.checkStore, c.checkWorkload, c.checkFollowup,
		c.checkCorpus, c.checkMembers,
		c.Settings().Check,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return server.CheckListen(c.Listen, string(c.Token))
}

func (c *Config) checkRequired() error {
	if !c.sends() && !c.Member { // they use no target
		return nil
	}
	if c.Member { // the coordinator names its target
		if c.Members.NATS.URL == "" {
			return api.Require("members.nats.url", forms["nats"].allowed+" (--join)")
		}
		return nil
	}
	if c.Target.URL == "" {
		return api.Require("target.url", forms["target"].allowed+" (--target-url)")
	}
	if c.DataDir == "" {
		return api.Require("data_dir", "a directory; the environment names no user data directory")
	}
	return c.checkTargets()
}

// checkTargets refuses a path other than the API's.
func (c *Config) checkTargets() error {
	targets := [][2]string{{"target.url", c.Target.URL}, {"twin.target.url", c.Twin.Target.URL}, {
		"followup.url",
		c.Followup.URL,
	}}
	for _, e := range c.Mode.Addresses() {
		targets = append(targets, [2]string{"mode.endpoints", e.URL})
	}
	for _, t := range targets {
		bad := new(api.FieldError)
		if _, err := api.ParseTarget(t[1]); t[1] != "" && errors.As(err, &bad) {
			return api.Refuse(t[0], bad.Value, bad.Allowed)
		}
	}
	return nil
}

func (c *Config) checkStore() error {
	if n := c.Store.MaxBytes; n != 0 && n < store.MinBytes { // such as a number of GiB
		return api.Refuse("store.max_bytes", n, fmt.Sprintf("0 (no limit), or at least %d", store.MinBytes))
	}
	return nil
}

// checkWarmup refuses a warm-up without an end of the run, which alone has figures that it is left out of, and before a
// rate that changes from the beginning.
func (c *Config) checkWarmup() error {
	switch {
	case c.Warmup == 0 || !c.sends():
	case !c.Ends():
		return api.Refuse("warmup", c.Warmup, "0s without an end of the run: set duration, requests, or a trace that does "+
			"not loop")
	case len(c.Rate.Levels) > 1:
		return api.Refuse("warmup", c.Warmup, "0s with a rate that changes, whose changes begin with the run")
	}
	return nil
}

func (c *Config) checkWorkload() error {
	if err := c.checkWarmup(); err != nil {
		return err
	}
	if c.OutputTokens.Mean > float64(c.MaxTokens) {
		return api.Refuse("output_tokens.mean", format(reflect.ValueOf(c.OutputTokens.Mean)),
			fmt.Sprintf("0 to %d (max_tokens)", c.MaxTokens))
	}
	if err := c.checkRouting(); err != nil {
		return err
	}
	return c.WorkloadSettings().Check(c.MaxConcurrency)
}

// checkMode requires a start mode that the driver can return to. The modes of a simulated cluster are
// not checked: only the cluster itself reports them.
func (c *Config) checkMode() error {
	var offers []string
	known := false
	switch c.Mode.Driver {
	case "simulated":
		return nil
	case "kubernetes": // the mode is read from the object
		return c.checkKubernetes()
	case "command", "http":
		return nil
	case "pinned":
		if r := c.Target.Router; r != "" && r != router.Dynamo {
			return api.Refuse("mode.driver", "pinned", "another driver, or arms, before "+r+" (target.router): pinned names "+
				"the instance of each turn, which only a Dynamo takes")
		}
		for _, m := range c.Mode.Pinned() {
			offers = append(offers, string(m.Mode))
		}
		known = slices.Contains(offers, c.Mode.Mode)
	case "manual":
		offers = c.Mode.Offers
		known = c.Mode.Mode == string(api.ModeUnknown) || slices.Contains(c.Mode.States(), c.Mode.State())
	case "endpoints":
		if err := c.checkEndpoints(); err != nil {
			return err
		}
		offers = c.Mode.Endpoints
		known = c.Mode.Address() != ""
	}
	if known {
		return nil
	}
	return api.Refuse("mode.mode", c.Mode.Mode, fmt.Sprintf("one of the available modes (%s)", strings.Join(offers, ", ")))
}

// checkKubernetes requires one way to find the object, and at least two modes to choose from, in the driver's spelling.
func (c *Config) checkKubernetes() error {
	k := c.Mode.Kubernetes
	if k.Name != "" && k.Selector != "" {
		return api.Refuse("mode.kubernetes.selector", k.Selector, "leave it empty if mode.kubernetes.name is set")
	}
	for _, m := range c.Mode.States() {
		if m.Mode == api.ModeUnknown {
			return api.Refuse("mode.offers", string(m.Mode), "kv, round_robin or least_loaded with mode.driver kubernetes")
		}
	}
	return nil
}

// checkEndpoints requires one address per mode, one of them the target's.
func (c *Config) checkEndpoints() error {
	addresses := c.Mode.Addresses()
	if c.Mode.Served != nil {
		return nil // their own rules hold
	}
	if len(addresses) == 0 {
		return api.Require("mode.endpoints", "one URL per mode with mode.driver endpoints")
	}
	if _, err := cluster.NewArms(context.Background(), cluster.ArmsOptions{Arms: addresses}); err != nil {
		return err
	}
	target := func(e cluster.Arm) bool { return e.URL == c.Target.URL }
	if c.Target.URL != "" && !slices.ContainsFunc(addresses, target) {
		return api.Refuse("target.url", c.Target.URL, fmt.Sprintf("one of mode.endpoints (%s)",
			strings.Join(c.Mode.Endpoints, ", ")))
	}
	return nil
}

// checkMembers requires a credential or a token for everything beyond loopback: metrics_token to listen on another
// address, and the rules of [members.Access.Check] for the NATS server, if there is one.
func (c *Config) checkMembers() error {
	if at := c.Members.Listen; at != "" && c.MetricsToken == "" {
		if host, _, _ := net.SplitHostPort(at); !api.IsLoopback(host) {
			return api.Refuse("members.listen", fmt.Sprintf("%q", at),
				"a loopback address such as 127.0.0.1:8089; set metrics_token to listen elsewhere")
		}
	}
	if c.Members.NATS.URL == "" {
		return nil
	}
	return c.Members.Access().Check()
}

func (c *Config) checkFollowup() error {
	if c.Followup.Text != "" && c.Followup.URL != "" {
		return api.Refuse("followup.url", c.Followup.URL,
			"leave it empty if followup.text is set (the preset recorded sets it, too)")
	}
	return nil
}

// checkCorpus requires at most one place, with all of its settings.
func (c *Config) checkCorpus() error {
	var places []string
	for _, p := range []struct{ field, value string }{
		{"corpus.dir", c.Corpus.Dir},
		{"corpus.file", c.Corpus.File},
		{"corpus.s3.bucket", c.Corpus.S3.Bucket},
	} {
		if p.value != "" {
			places = append(places, p.field)
		}
	}
	s3 := c.Corpus.S3
	switch {
	case len(places) > 1:
		return api.Refuse(places[1], "a second source", "set only one of corpus.dir, corpus.file and corpus.s3.bucket")
	case s3.Bucket != "" && s3.Endpoint == "":
		return api.Require("corpus.s3.endpoint", forms["origin"].allowed)
	case (s3.AccessKey == "") != (s3.SecretKey == ""):
		return api.Refuse("corpus.s3.secret_key", "one key without the other",
			"set both the access key and the secret key, or neither")
	case c.Corpus.Refresh > 0 && c.Corpus.Refresh < time.Second:
		return api.Refuse("corpus.refresh", c.Corpus.Refresh.String(), "0s, or at least 1s")
	}
	return nil
}
