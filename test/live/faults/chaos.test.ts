import { LONG, smallForms } from './small.js';

smallForms(LONG);
