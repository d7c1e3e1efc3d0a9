/** @jest-environment node */
import { FakeClient } from '../../test/fixtures';
import { conversation, figures, listOf, turn } from '../../test/conversations';
import { conversationsCsv, readAll, turnsCsv } from './exported';

const lines = (csv: string) => csv.trimEnd().split('\r\n');

function clientWith(n: number) {
  const all = Array.from({ length: n }, (_, k) => conversation(k));
  const client = new FakeClient();
  client.reads.mockImplementation((path) => Promise.resolve(listOf(all, path)));
  return client;
}

it('reads every page of a filter, newest first', async () => {
  const all = await readAll(clientWith(4500), { lane: 'main', topic: 'topic 3' }, new AbortController().signal);
  expect(all).toHaveLength(450);
  expect(all[0].number).toBe(4493);
  expect(new Set(all.map(({ id }) => id)).size).toBe(450);
});

it('reads no further once the signal is aborted', async () => {
  const client = clientWith(4500);
  const leaving = new AbortController();
  leaving.abort();
  await readAll(client, { lane: 'main' }, leaving.signal);
  expect(client.reads).toHaveBeenCalledTimes(1);
});

it('writes a line for each conversation', () => {
  const [heads, first, second] = lines(
    conversationsCsv([
      conversation(7, { figures }),
      conversation(6, { status: 'active', ended: undefined, turns_done: 1 }),
    ])
  );
  expect(heads).toBe(
    'id,number,topic,starter,status,error_class,turns_planned,turns_done,started,ended,ttft,kv_hit_ratio,workers'
  );
  expect(first).toBe(
    'main-run-7,7,Topic ' +
      '7,topic-7,completed,,4,4,2026-11-20T09:00:07.000Z,2026-11-20T09:01:37.000Z,0.612 0.224 ' +
      ',0.4,11 22'
  );
  expect(second).toBe('main-run-6,6,Topic 6,topic-6,active,,4,1,2026-11-20T09:00:06.000Z,,,,');
});

it('writes a line for each turn, with its messages', () => {
  const said = 'First,\n"second"';
  const text = turnsCsv(conversation(7, { turns: [turn(1), turn(2, { assistant_message: said })] }));
  const [heads, first] = lines(text);
  expect(heads.split(',')).toHaveLength(first.split(',').length);
  expect(first).toContain('main,main-run-7,1,main-run-7-1,3,120,,kv,off,true,ok,');
  expect(text).toContain('Question 2,"First,\n""second"""\r\n');
  expect(lines(turnsCsv(conversation(8)))).toHaveLength(1);
});
