package local

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"kvbooth/sidecar/process"
)

// instanceLabel matches a worker's instance id, hexadecimal, in its own metrics.
var instanceLabel = regexp.MustCompile(`dynamo_endpoint="generate"[^}]*worker_id="([0-9a-f]+)"`)

func (w worker) metricsURL() string { return "http://" + process.Loopback(w.port) + "/metrics" }

// awaitWorker waits until a worker reports its instance id and the frontend lists it.
func (d *Dynamo) awaitWorker(ctx context.Context, i int) error {
	w := d.worker(i)
	err := poll(ctx, func(ctx context.Context) error {
		instance, err := w.askInstance(ctx)
		if err != nil {
			return err
		}
		listed, err := d.Instances(ctx)
		if err != nil {
			return err
		}
		if !slices.Contains(listed, instance) {
			return fmt.Errorf("the frontend does not list instance %s yet", instance)
		}
		d.setInstance(i, w.process, instance)
		return nil
	}, w.process, d.frontendProcess())
	if err != nil {
		return fmt.Errorf("%s is not ready: %w", w.name, err)
	}
	return nil
}

func (w worker) askInstance(ctx context.Context) (string, error) {
	metrics, err := get(ctx, w.metricsURL())
	if err != nil {
		return "", err
	}
	match := instanceLabel.FindSubmatch(metrics)
	if match == nil {
		return "", fmt.Errorf("%s does not report an instance ID yet", w.metricsURL())
	}
	id, err := strconv.ParseUint(string(match[1]), 16, 64)
	return strconv.FormatUint(id, 10), err
}

// setInstance records a worker's instance id, unless the worker has been restarted meanwhile.
func (d *Dynamo) setInstance(i int, p *process.Process, instance string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.workers[i].process == p {
		d.workers[i].instance = instance
	}
}

// Instances returns the ids of the instances to which the frontend sends requests. A killed worker stays listed for
// about ten seconds.
func (d *Dynamo) Instances(ctx context.Context) ([]string, error) {
	body, err := get(ctx, d.URL()+"/health")
	if err != nil {
		return nil, err
	}
	var health struct {
		Instances []struct {
			Endpoint string      `json:"endpoint"`
			ID       json.Number `json:"instance_id"`
		} `json:"instances"`
	}
	if err := json.Unmarshal(body, &health); err != nil {
		return nil, fmt.Errorf("GET %s/health: %w", d.URL(), err)
	}
	var ids []string
	for _, instance := range health.Instances {
		if instance.Endpoint == "generate" {
			ids = append(ids, instance.ID.String())
		}
	}
	return ids, nil
}

// awaitModel waits until the frontend serves the model.
func (d *Dynamo) awaitModel(ctx context.Context) error {
	err := poll(ctx, func(ctx context.Context) error {
		body, err := get(ctx, d.URL()+"/v1/models")
		if err != nil {
			return err
		}
		var models struct {
			Data []struct{ ID string }
		}
		if err := json.Unmarshal(body, &models); err != nil {
			return fmt.Errorf("GET %s/v1/models: %w", d.URL(), err)
		}
		for _, model := range models.Data {
			if model.ID == d.options.ModelName {
				return nil
			}
		}
		return fmt.Errorf("the frontend does not list the model %s yet", d.options.ModelName)
	}, d.frontendProcess())
	if err != nil {
		return fmt.Errorf("the frontend is not ready: %w", err)
	}
	return nil
}
