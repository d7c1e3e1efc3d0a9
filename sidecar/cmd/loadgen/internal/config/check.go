package config

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/server"
	"kvbooth/sidecar/loadgen/store"
)

// Check holds every field against its own rules, and those that depend on
// each other against one another. The error is an [api.FieldError].
func (c *Config) Check() error {
	m := newModel(*c, io.Discard)
	for _, f := range m.fields {
		scratch := reflect.New(f.flag.Target.Type()).Elem()
		if err := f.set(scratch, format(f.flag.Target)); err != nil {
			return err
		}
	}
	for _, s := range secrets {
		if err := s.check(c); err != nil {
			return err
		}
	}
	for _, check := range []func() error{c.checkMode, c.checkRequired, c.checkTwin, c.checkOutput, c.checkSweep, c.Shadow.check, c.checkStore, c.checkWorkload, c.checkFollowup, c.checkCorpus, c.Settings().Check} {
		if err := check(); err != nil {
			return err
		}
	}
	return server.CheckListen(c.Listen, string(c.Token))
}

func (c *Config) checkRequired() error {
	if c.Compare != nil || c.Shadow != nil { // which ask no target
		return nil
	}
	if c.Target.URL == "" {
		return api.Refuse("target.url", "no value", forms["target"].allowed+" (--target-url)")
	}
	if c.DataDir == "" {
		return api.Refuse("data_dir", "no value", "a path; the environment does not tell the user's data folder")
	}
	return nil
}

func (c *Config) checkStore() error {
	if n := c.Store.MaxBytes; n != 0 && n < store.MinBytes { // such as a number of GiB
		return api.Refuse("store.max_bytes", n, fmt.Sprintf("0 (no limit), or %d and more", store.MinBytes))
	}
	return nil
}

func (c *Config) checkWorkload() error {
	if c.OutputTokens.Mean > float64(c.MaxTokens) {
		return api.Refuse("output_tokens.mean", format(reflect.ValueOf(c.OutputTokens.Mean)), fmt.Sprintf("0 to %d (max_tokens)", c.MaxTokens))
	}
	return c.WorkloadSettings().Check(c.MaxConcurrency)
}

// checkMode asks that the mode at the start be one that the driver can return to.
// What a simulated cluster offers only it can tell.
func (c *Config) checkMode() error {
	offers := []string{string(api.ModeKV), string(api.ModeRoundRobin)}
	known := slices.Contains(offers, c.Mode.Mode)
	switch c.Mode.Driver {
	case "simulated":
		return nil
	case "kubernetes": // the object tells the mode
		return c.checkKubernetes()
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
	return api.Refuse("mode.mode", c.Mode.Mode, fmt.Sprintf("a mode on offer (%s)", strings.Join(offers, ", ")))
}

// checkKubernetes asks for one way to find the object, and for two modes at least to choose
// from, as the driver spells them.
func (c *Config) checkKubernetes() error {
	k := c.Mode.Kubernetes
	if k.Name != "" && k.Selector != "" {
		return api.Refuse("mode.kubernetes.selector", k.Selector, "no value beside mode.kubernetes.name")
	}
	for _, m := range c.Mode.States() {
		if m.Mode == api.ModeUnknown {
			return api.Refuse("mode.offers", string(m.Mode), "kv, round_robin and least_loaded, since mode.driver is kubernetes")
		}
	}
	return nil
}

// checkEndpoints asks for one address a mode, of which the target's is one.
func (c *Config) checkEndpoints() error {
	addresses := c.Mode.Addresses()
	if len(addresses) == 0 {
		return api.Refuse("mode.endpoints", "no value", "an address for each mode, since mode.driver is endpoints")
	}
	if _, err := cluster.NewEndpoints(addresses, nil, nil); err != nil {
		return err
	}
	target := func(e cluster.Endpoint) bool { return e.URL == c.Target.URL }
	if c.Target.URL != "" && !slices.ContainsFunc(addresses, target) {
		return api.Refuse("target.url", c.Target.URL, fmt.Sprintf("one of mode.endpoints (%s)", strings.Join(c.Mode.Endpoints, ", ")))
	}
	return nil
}

func (c *Config) checkFollowup() error {
	if c.Followup.Text != "" && c.Followup.URL != "" {
		return api.Refuse("followup.url", c.Followup.URL, "no value beside followup.text, which the preset recorded sets, too")
	}
	return nil
}

// checkCorpus asks for one place, and for all that it takes.
func (c *Config) checkCorpus() error {
	var places []string
	for _, p := range []struct{ field, value string }{{"corpus.dir", c.Corpus.Dir}, {"corpus.file", c.Corpus.File}, {"corpus.s3.bucket", c.Corpus.S3.Bucket}} {
		if p.value != "" {
			places = append(places, p.field)
		}
	}
	s3 := c.Corpus.S3
	switch {
	case len(places) > 1:
		return api.Refuse(places[1], "this second place", "one of corpus.dir, corpus.file and corpus.s3.bucket")
	case s3.Bucket != "" && s3.Endpoint == "":
		return api.Refuse("corpus.s3.endpoint", "no value", forms["origin"].allowed)
	case (s3.AccessKey == "") != (s3.SecretKey == ""):
		return api.Refuse("corpus.s3.secret_key", "one of two keys", "an access key together with a secret key, or neither")
	case c.Corpus.Refresh > 0 && c.Corpus.Refresh < time.Second:
		return api.Refuse("corpus.refresh", c.Corpus.Refresh.String(), "0s or from 1s on")
	}
	return nil
}
