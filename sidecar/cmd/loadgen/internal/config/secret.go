package config

import (
	"fmt"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
)

// Secret is a text that is hidden in logs and in formatted output.
type Secret string

// String hides the secret; string(s) is the secret itself.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(hidden)"
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the secret from JSON and logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// secret is a field that has no flag and is not allowed in the file.
type secret struct {
	name        string
	least, most int // characters
	value       func(*Config) *Secret
	file        func(*Config) string
}

var secrets = []secret{
	{"token", 16, 512, func(c *Config) *Secret { return &c.Token }, func(c *Config) string { return c.TokenFile }},
	{
		"metrics_token", 16, 512, func(c *Config) *Secret { return &c.MetricsToken },
		func(c *Config) string { return c.MetricsTokenFile },
	},
	{
		"target.api_key", 1, 4096, func(c *Config) *Secret { return &c.Target.APIKey },
		func(c *Config) string { return c.Target.APIKeyFile },
	},
	{
		"twin.target.api_key", 1, 4096, func(c *Config) *Secret { return &c.Twin.Target.APIKey },
		func(c *Config) string { return c.Twin.Target.APIKeyFile },
	},
	{
		"followup.api_key", 1, 4096, func(c *Config) *Secret { return &c.Followup.APIKey },
		func(c *Config) string { return c.Followup.APIKeyFile },
	},
	{
		"members.nats.token", 16, 512, func(c *Config) *Secret { return &c.Members.NATS.Token },
		func(c *Config) string { return c.Members.NATS.TokenFile },
	},
	{
		"corpus.s3.access_key", 1, 512, func(c *Config) *Secret { return &c.Corpus.S3.AccessKey },
		func(c *Config) string { return c.Corpus.S3.AccessKeyFile },
	},
	{
		"corpus.s3.secret_key", 1, 512, func(c *Config) *Secret { return &c.Corpus.S3.SecretKey },
		func(c *Config) string { return c.Corpus.S3.SecretKeyFile },
	},
}

func isSecret(name string) bool {
	return slices.ContainsFunc(secrets, func(s secret) bool { return s.name == name })
}

// readSecrets reads the secrets from their variables or files.
func (l *loader) readSecrets(c *Config) error {
	for _, s := range secrets {
		g, err := l.readSecret(s, s.file(c))
		if err != nil {
			return err
		}
		*s.value(c) = Secret(g.value)
		if err := s.check(c); err != nil {
			return &badValue{err, g.from}
		}
	}
	return nil
}

func (l *loader) readSecret(s secret, path string) (given, error) {
	fromEnv := given{l.env[variable(s.name)], variable(s.name)}
	if path == "" {
		return fromEnv, nil
	}
	bad := &api.FieldError{Field: s.name + "_file", Value: path}
	if fromEnv.value != "" {
		bad.Allowed = "set either this file or the variable " + fromEnv.from + ", not both"
		return given{}, bad
	}
	data, err := l.read(bad.Field, path, "a readable file with the secret on one line")
	if err != nil {
		return given{}, err
	}
	value := strings.TrimRight(string(data), "\r\n")
	if value == "" {
		bad.Allowed = "a file with the secret on one line; it is empty"
		return given{}, bad
	}
	return given{value, path}, nil
}

// check requires that an HTTP header can contain a secret, and its least length.
func (s secret) check(c *Config) error {
	v := string(*s.value(c))
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	if v == "" || len(v) >= s.least && len(v) <= s.most && !strings.ContainsFunc(v, odd) {
		return nil
	}
	return api.Refuse(s.name, "its value (hidden)", s.allowed())
}

func (s secret) allowed() string {
	return fmt.Sprintf("%d to %d visible ASCII characters without spaces", s.least, s.most)
}
