/** The SQLite store keeps its promises in random histories. */
import { sqliteBackend } from './sqlite-backend.ts';
import { propertySuite } from './suite.ts';

propertySuite(sqliteBackend);
