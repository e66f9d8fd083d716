/** What the demo prints, line by line, each with the seconds since its start. */
export interface Say {
  /** A step that begins. */
  step(text: string): void;
  /** What came of it. */
  note(text: string): void;
  /** An event of the live streams, as it comes. */
  live(text: string): void;
}

export function saying(write: (line: string) => void, monotonicMs: () => number): Say {
  const startedAt = monotonicMs();
  const line = (mark: string, text: string): void => {
    const seconds = ((monotonicMs() - startedAt) / 1_000).toFixed(1).padStart(5);
    write(`${seconds}s ${mark} ${text}\n`);
  };
  return {
    step: (text) => line('▸', text),
    note: (text) => line(' ', text),
    live: (text) => line('  ⇢', text),
  };
}
