/** A refused or failed call, in the sidecar's own words (RFC 9457). */
export class Problem extends Error {
  constructor(
    /** The HTTP status, 0 where no answer came. */
    public readonly status: number,
    /** What is wrong, and what to do. */
    message: string,
    /** The field at fault, as the API names it: "slo.ttft". */
    public readonly field?: string,
    /** What that field may be. */
    public readonly allowed?: string
  ) {
    super(message);
    this.name = 'Problem';
  }
}

/** Reads a problem document; whatever else came is described by its status. */
export function toProblem(status: number, body: unknown): Problem {
  const document = isRecord(body) ? body : {};
  const field = text(document.field);
  const allowed = text(document.allowed);
  const words = text(document.detail) ?? text(document.title) ?? text(document.message) ?? describe(status);
  return new Problem(status, words, field, allowed);
}

/** Makes a problem of whatever was thrown. */
export function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : toProblem(0, error);
}

function describe(status: number): string {
  switch (status) {
    case 0:
      return 'No response. Check the network and that the server is running.';
    case 403:
      return 'Your role can view this but not change it.';
    default:
      return `The server answered with status ${status}.`;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
