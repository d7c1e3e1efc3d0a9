package config

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/server"
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
	for _, check := range []func() error{c.checkRequired, c.checkWorkload, c.checkSlider, c.checkMode} {
		if err := check(); err != nil {
			return err
		}
	}
	return server.CheckListen(c.Listen, string(c.Token))
}

func (c *Config) checkRequired() error {
	if c.Target.URL == "" {
		return &api.FieldError{Field: "target.url", Value: "no value", Allowed: forms["target"].allowed + " (--target-url)"}
	}
	if c.DataDir == "" {
		return &api.FieldError{Field: "data_dir", Value: "no value", Allowed: "a path; the environment does not tell the user's data folder"}
	}
	return nil
}

func (c *Config) checkWorkload() error {
	if c.OutputTokens.Mean > float64(c.MaxTokens) {
		return &api.FieldError{
			Field: "output_tokens.mean", Value: format(reflect.ValueOf(c.OutputTokens.Mean)),
			Allowed: fmt.Sprintf("0 to %d (max_tokens)", c.MaxTokens),
		}
	}
	return c.WorkloadSettings().Check(c.MaxConcurrency)
}

func (c *Config) checkSlider() error {
	s := c.Slider
	switch {
	case s.Max > c.MaxConcurrency:
		return outside("slider.max", s.Max, fmt.Sprintf("at most %d (max_concurrency)", c.MaxConcurrency))
	case s.Min >= s.Max:
		return outside("slider.min", s.Min, fmt.Sprintf("less than %d (slider.max)", s.Max))
	case s.Increment > s.Max-s.Min:
		return outside("slider.increment", s.Increment, fmt.Sprintf("at most %d (slider.max less slider.min)", s.Max-s.Min))
	}
	return nil
}

func outside(field string, value int, allowed string) error {
	return &api.FieldError{Field: field, Value: fmt.Sprint(value), Allowed: allowed}
}

// checkMode asks that the mode at the start be one that the driver can return to.
// What a simulated cluster offers only it can tell.
func (c *Config) checkMode() error {
	offers := []string{string(api.ModeKV), string(api.ModeRoundRobin)}
	known := slices.Contains(offers, c.Mode.Mode)
	switch c.Mode.Driver {
	case "simulated":
		return nil
	case "manual":
		offers = c.Mode.Offers
		known = slices.Contains(c.Mode.States(), c.Mode.State())
	}
	if known {
		return nil
	}
	return &api.FieldError{Field: "mode.mode", Value: c.Mode.Mode, Allowed: fmt.Sprintf("a mode on offer (%s)", strings.Join(offers, ", "))}
}
