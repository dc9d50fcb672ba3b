extern "C" int StandInVersion();
int StandInVersion() { return STAND_IN_VERSION; }
