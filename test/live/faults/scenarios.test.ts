import { LONG, smallForms } from './small.js';
import { SCENARIOS } from './scenarios.js';

smallForms(Object.keys(SCENARIOS).filter((name) => !LONG.includes(name)));
