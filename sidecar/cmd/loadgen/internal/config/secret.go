package config

import (
	"fmt"
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
	value       *Secret
	file        string // path of a file with it; empty: none
}

// secrets lists the secrets of a configuration.
func (c *Config) secrets() []secret {
	s3 := &c.Corpus.S3
	return []secret{
		{"token", 16, 512, &c.Token, c.TokenFile},
		{"metrics_token", 16, 512, &c.MetricsToken, c.MetricsTokenFile},
		{"target.api_key", 1, 4096, &c.Target.APIKey, c.Target.APIKeyFile},
		{"twin.target.api_key", 1, 4096, &c.Twin.Target.APIKey, c.Twin.Target.APIKeyFile},
		{"followup.api_key", 1, 4096, &c.Followup.APIKey, c.Followup.APIKeyFile},
		{"members.nats.token", 16, 512, &c.Members.NATS.Token, c.Members.NATS.TokenFile},
		{"corpus.s3.access_key", 1, 512, &s3.AccessKey, s3.AccessKeyFile},
		{"corpus.s3.secret_key", 1, 512, &s3.SecretKey, s3.SecretKeyFile},
	}
}

// readSecrets reads the secrets from their variables or files.
func (l *loader) readSecrets(c *Config) error {
	for _, s := range c.secrets() {
		g, err := l.readSecret(s)
		if err != nil {
			return err
		}
		*s.value = Secret(g.value)
		if err := s.check(); err != nil {
			return &badValue{err, g.from}
		}
	}
	return nil
}

func (l *loader) readSecret(s secret) (given, error) {
	fromEnv := given{value: l.env[variable(s.name)], from: variable(s.name)}
	if s.file == "" {
		if s.name == "target.api_key" && fromEnv.value == "" && l.from["target.url"] == openAIURL {
			return given{value: l.env[openAIKey], from: openAIKey}, nil
		}
		return fromEnv, nil
	}
	bad := &api.FieldError{Field: s.name + "_file", Value: s.file}
	if fromEnv.value != "" {
		bad.Allowed = "set either this file or the variable " + fromEnv.from + ", not both"
		return given{}, bad
	}
	data, err := l.read(bad.Field, s.file, "a readable file with the secret on one line")
	if err != nil {
		return given{}, err
	}
	value := strings.TrimRight(string(data), "\r\n")
	if value == "" {
		bad.Allowed = "a file with the secret on one line; it is empty"
		return given{}, bad
	}
	return given{value: value, from: s.file}, nil
}

// check requires that an HTTP header can contain a secret, and its least length.
func (s secret) check() error {
	v := string(*s.value)
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	if v == "" || len(v) >= s.least && len(v) <= s.most && !strings.ContainsFunc(v, odd) {
		return nil
	}
	return api.Refuse(s.name, "its value (hidden)", s.allowed())
}

func (s secret) allowed() string {
	return fmt.Sprintf("%d to %d visible ASCII characters without spaces", s.least, s.most)
}
