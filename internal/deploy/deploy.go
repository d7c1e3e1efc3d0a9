// Package deploy reads the files for containers, so that tests can compare them with the programs that they start.
package deploy

import (
	"context"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"kvbooth/internal/source"
)

// Token and Password are values for the secrets that an operator must set.
const (
	Token    = "a-token-of-thirty-two-characters"
	Password = "a-password"
)

// Variables are the variables that must be set to start the containers.
var Variables = []string{"KVBOOTH_TOKEN=" + Token, "KVBOOTH_ADMIN_PASSWORD=" + Password}

// Compose loads the repository's docker-compose.yaml. Its variables come from env, as "NAME=value", and from nothing
// else: unlike `docker compose`, it reads neither the process's environment nor a .env or override file. A required
// variable that is missing is an error. The paths in the project are absolute.
func Compose(ctx context.Context, env ...string) (*types.Project, error) {
	root, err := source.Root()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(root, "docker-compose.yaml")
	options, err := cli.NewProjectOptions([]string{file}, cli.WithEnv(env))
	if err != nil {
		return nil, err
	}
	return options.LoadProject(ctx)
}

// Service returns the command and the environment of a service's program.
func Service(ctx context.Context, name string) (args, environ []string, err error) {
	project, err := Compose(ctx, Variables...)
	if err != nil {
		return nil, nil, err
	}
	service, err := project.GetService(name)
	if err != nil {
		return nil, nil, err
	}
	for variable, value := range service.Environment {
		if value != nil {
			environ = append(environ, variable+"="+*value)
		}
	}
	return service.Command, environ, nil
}

// HealthCheck returns the command line of a service's health check, beginning with its program.
func HealthCheck(ctx context.Context, name string) ([]string, error) {
	project, err := Compose(ctx, Variables...)
	if err != nil {
		return nil, err
	}
	service, err := project.GetService(name)
	if err != nil || service.HealthCheck == nil || len(service.HealthCheck.Test) < 2 {
		return nil, err
	}
	return service.HealthCheck.Test[1:], nil // the first element is CMD
}
