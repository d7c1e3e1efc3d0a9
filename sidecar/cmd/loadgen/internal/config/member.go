package config

// ForMember is the environment that a member on this machine needs beside what every program
// has, "NAME=value" each: the keys, which have no flags, and the way to the server. What its
// work is the coordinator tells it.
func (c *Config) ForMember(name string) (env []string) {
	n := c.Members.NATS
	for _, v := range [][2]string{
		{"members.name", name},
		{"members.fleet", c.Members.Fleet},
		{"members.nats.url", n.URL},
		{"members.nats.token", string(n.Token)},
		{"members.nats.nkey_file", n.NKeyFile},
		{"members.nats.ca_file", n.CAFile},
		{"target.api_key", string(c.Target.APIKey)},
		{"twin.target.api_key", string(c.Twin.Target.APIKey)},
		{"followup.api_key", string(c.Followup.APIKey)},
		{"log.level", c.Log.Level},
		{"log.format", c.Log.Format},
	} {
		if v[1] != "" {
			env = append(env, variable(v[0])+"="+v[1])
		}
	}
	return env
}

// ForCoordinator is what this process's own arguments and environment are followed by where
// the coordinator is a process of its own: it starts no members, and the token, which is of
// the environment, is that of the server which was started for it.
func (c *Config) ForCoordinator() (args, env []string) {
	args = []string{"--members-count=0", "--members-nats-url=" + c.Members.NATS.URL}
	if c.Members.NATS.Token != "" && c.Members.NATS.TokenFile == "" {
		env = append(env, variable("members.nats.token")+"="+string(c.Members.NATS.Token))
	}
	return args, env
}
