import type { Reporter, TestModule } from 'vitest/node';

/**
 * Prints `N passed, N failed` alone on the last line. A file that could not be loaded, and an error
 * outside any test, hold no test of their own: each counts as one failure, so that the line never
 * says `0 failed` for a run that ends with a non-zero exit code.
 *
 * It must be the last reporter of the list, since reporters print in that order.
 */
export class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let passed = 0;
    let failed = unhandledErrors.length;
    for (const module of modules) {
      let failedInModule = 0;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') passed += 1;
        if (state === 'failed') failedInModule += 1;
      }
      // A failing import or a failing hook fails the file without failing any of its tests.
      if (module.state() === 'failed' && failedInModule === 0) failedInModule = 1;
      failed += failedInModule;
    }
    process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
  }
}
