import { render, screen, within } from '@testing-library/react';

import type { Baseline } from '../../client';
import { violations } from '../../test/axe';
import { DeploymentTable } from '.';

const recorded: Baseline = {
  name: 'r',
  title: '3× H200, recorded',
  notes: 'Recorded on a cloud. Three GPUs.\nSix sweeps.',
  kind: 'recorded',
  deployment: {
    engine: 'trtllm',
    gpu: 'H200',
    workers: 3,
    speculation: 'not_recorded',
    dynamo: '0.9.0',
    max_batch_size: 64,
    max_num_tokens: 16384,
    chunked_prefill: true,
    kv_cache_dtype: 'fp8',
    block_size: 32,
    free_gpu_memory_fraction: 0.9,
  },
  rows: [],
};

const texts = (row: string) =>
  within(screen.getByRole('row', { name: new RegExp(`^${row}`) }))
    .getAllByRole('cell')
    .map((cell) => cell.textContent);

describe('the table of deployments', () => {
  it('shows the recorded values beside the live ones, and marks those not reported', async () => {
    const { container } = render(
      <DeploymentTable live={{ engine: 'vllm', chunked_prefill: false }} recorded={recorded} />
    );
    expect(texts('Engine')).toEqual(['vLLM', 'TensorRT-LLM']);
    expect(texts('NVIDIA Dynamo')).toEqual(['not reported', '0.9.0']);
    expect(texts('Kubernetes')).toEqual(['not reported', 'not recorded']);
    expect(texts('Speculation')).toEqual(['not reported', 'not recorded']);
    expect(texts('Max batch size')).toEqual(['not reported', '64 sequences']);
    expect(texts('Max num tokens')).toEqual(['not reported', '16,384 tokens']);
    expect(texts('Chunked prefill')).toEqual(['off', 'on']);
    expect(texts('KV cache dtype')).toEqual(['not reported', 'FP8']);
    expect(texts('Free GPU memory')).toEqual(['not reported', '90.0 %']);
    expect(screen.getByText('3× H200, recorded: Recorded on a cloud. Three GPUs.')).toBeInTheDocument();
    expect(await violations(container)).toEqual([]);
  });

  it('is shown without either', () => {
    render(<DeploymentTable live={undefined} recorded={undefined} />);
    expect(texts('GPU')).toEqual(['not reported', 'not recorded']);
  });
});
