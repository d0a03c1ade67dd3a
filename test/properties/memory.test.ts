/** The memory store keeps its promises in random histories. */
import { memoryBackend } from './backend.ts';
import { propertySuite } from './suite.ts';

propertySuite(memoryBackend);
