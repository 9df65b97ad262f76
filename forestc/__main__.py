from forestc.cli import main

main()
