import { settingNames, settings } from './settings.js';
import { settingFacts } from './values.js';

/** The README's table of settings, in Markdown. A guard compares it with what stands there. */
export function settingsTable(): string {
  const rows = settingNames.map((name) => {
    const facts = settingFacts.get(settings.shape[name]);
    if (facts === undefined) throw new Error(`${name} was defined without its facts`);
    const fallback =
      facts.defaultText === undefined || facts.defaultText === '' ? '—' : `\`${facts.defaultText}\``;
    const bounds = `${facts.mustBe}${facts.unit === undefined ? '' : ` (${facts.unit})`}`;
    return [`\`${name}\``, fallback, bounds, facts.description];
  });
  const head = [
    ['Variable', 'Default', 'Value', 'Meaning'],
    ['---', '---', '---', '---'],
  ];
  return (
    [...head, ...rows]
      .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
      .join('\n') + '\n'
  );
}
