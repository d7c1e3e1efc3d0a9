package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// generate is the name of the endpoint at which a worker takes users' requests.
const generate = "generate"

// ErrNoDynamo reports a server that answers and is no Dynamo frontend.
var ErrNoDynamo = errors.New("not the health of a Dynamo frontend")

// Probe asks a Dynamo frontend (its URL with or without /v1) for the worker
// instances that take requests. The ids are decimal, in ascending order of their
// text, and distinct. A frontend without instances gives none and no error. A nil
// client means one without credentials. Probe takes 2 s at most. An invalid URL
// gives an [api.FieldError].
func Probe(ctx context.Context, target string, client *http.Client) (instances []string, err error) {
	u, err := targetURL(target)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	health := u.JoinPath("health")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, health.String(), nil)
	if err != nil {
		return nil, err
	}
	c := withMaxBody(client)
	if client == nil {
		defer c.CloseIdleConnections()
	}
	instances, err = askHealth(c, req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", health.Redacted(), err)
	}
	return instances, nil
}

func askHealth(client *http.Client, req *http.Request) ([]string, error) {
	res, err := client.Do(req)
	if err != nil {
		return nil, readable(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		err := errors.New("answered " + res.Status)
		if res.StatusCode == http.StatusNotFound {
			err = fmt.Errorf("%w: %w", ErrNoDynamo, err)
		}
		return nil, err
	}
	var health struct {
		Instances []struct {
			Endpoint string `json:"endpoint"`
			ID       uint64 `json:"instance_id"` // above 2^53: no float64
		} `json:"instances"`
	}
	if err := json.NewDecoder(res.Body).Decode(&health); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoDynamo, readable(err))
	}
	if health.Instances == nil {
		return nil, fmt.Errorf("%w: it has no list of instances", ErrNoDynamo)
	}
	ids := []string{}
	named := len(health.Instances) == 0
	for _, instance := range health.Instances {
		named = named || instance.Endpoint != ""
		if instance.Endpoint == generate {
			ids = append(ids, strconv.FormatUint(instance.ID, 10))
		}
	}
	if !named {
		return nil, fmt.Errorf("%w: its instances have no endpoints", ErrNoDynamo)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
